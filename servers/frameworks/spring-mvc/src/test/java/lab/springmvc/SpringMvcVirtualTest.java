package lab.springmvc;

import java.util.List;
import lab.conformance.ContractTest;
import lab.shell.ServerModel;

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

  @Override
  protected List<String> asShipped() {
    return List.of("\"requests_per_connection\":100", "\"client_version\":\"HTTP_2\"");
  }
}
