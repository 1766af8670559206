package lab.quarkus;

import jakarta.enterprise.inject.Produces;
import jakarta.inject.Singleton;
import lab.shell.ModelContext;

final class LabBeans {
  private LabBeans() {}

  @Produces
  @Singleton
  static ModelContext context() {
    return QuarkusHttp.current().context();
  }
}
