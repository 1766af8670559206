package lab.springmvc;

import lab.contract.ServerModel;
import lab.contract.test.ContractTest;

class SpringMvcVirtualTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return SpringMvc.VIRTUAL;
  }

  @Override
  protected String threadName() {
    return "tomcat-handler-";
  }

  @Override
  protected boolean speaksHttp09() {
    return true;
  }
}
