package lab.springmvc;

import java.util.List;
import lab.conformance.ContractTest;

class SpringMvcTest extends ContractTest {
  SpringMvcTest() {
    super(SpringMvc.PLATFORM, "http-nio-");
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"requests_per_connection\":100", "\"client_version\":\"HTTP_2\"");
  }
}
