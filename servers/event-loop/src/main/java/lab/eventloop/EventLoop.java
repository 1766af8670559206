package lab.eventloop;

import java.io.IOException;
import lab.contract.LabServer;
import lab.contract.ModelContext;
import lab.contract.ServerModel;
import lab.contract.TrafficServer;

/** Model {@code event-loop}: one thread, a selector, and a state machine per connection. */
public final class EventLoop {
  public static final ServerModel MODEL =
      new ServerModel() {
        @Override
        public String name() {
          return "event-loop";
        }

        @Override
        public TrafficServer start(ModelContext context) throws IOException {
          return LoopServer.start(context);
        }
      };

  private EventLoop() {}

  public static void main(String[] args) throws InterruptedException {
    LabServer.main(MODEL);
  }
}
