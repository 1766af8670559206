package lab.springmvc;

import java.util.List;
import lab.conformance.ContractTest;

class SpringMvcVirtualTest extends ContractTest {
  SpringMvcVirtualTest() {
    super(SpringMvc.VIRTUAL, "tomcat-handler-");
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"requests_per_connection\":100", "\"client_version\":\"HTTP_2\"");
  }
}
