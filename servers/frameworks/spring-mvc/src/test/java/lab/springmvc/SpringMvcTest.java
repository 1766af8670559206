package lab.springmvc;

import static lab.conformance.ContractTest.Trait.CLOSES_AFTER_503;
import static lab.conformance.ContractTest.Trait.SPEAKS_HTTP_09;
import static lab.conformance.ContractTest.Trait.WORKER_POOL;

import java.util.List;
import lab.conformance.ContractTest;

class SpringMvcTest extends ContractTest {
  SpringMvcTest() {
    super(SpringMvc.PLATFORM, "http-nio-", WORKER_POOL, SPEAKS_HTTP_09, CLOSES_AFTER_503);
  }

  @Override
  protected List<String> asShipped() {
    return List.of("\"requests_per_connection\":100", "\"client_version\":\"HTTP_2\"");
  }
}
