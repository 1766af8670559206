package lab.springmvc;

import lab.contract.ServerModel;
import lab.contract.test.ContractTest;

class SpringMvcTest extends ContractTest {
  @Override
  protected ServerModel model() {
    return SpringMvc.PLATFORM;
  }

  @Override
  protected String threadName() {
    return "http-nio-";
  }

  @Override
  protected boolean speaksHttp09() {
    return true;
  }

  @Override
  protected boolean closesAfter503() {
    return true;
  }
}
