package lab.springmvc;

import java.util.List;
import lab.conformance.ContractTest;
import lab.shell.ServerModel;

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
  protected boolean hasWorkerPool() {
    return true;
  }

  @Override
  protected boolean speaksHttp09() {
    return true;
  }

  @Override
  protected boolean closesAfter503() {
    return true;
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"requests_per_connection\":100", "\"client_version\":\"HTTP_2\"");
  }
}
