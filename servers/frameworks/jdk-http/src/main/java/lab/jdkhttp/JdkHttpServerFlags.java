package lab.jdkhttp;

import java.util.Map;
import lab.spec.BadValueException;
import lab.spec.Settings;

/**
 * The JVM-wide flags of the JDK's HTTP server. Its defaults decide results from 1,000 connections
 * on (200 idle connections kept, Nagle's algorithm on), and it reads them once, when the first such
 * server of the JVM starts. In the image that is the JMX exporter's, before our main, so they are
 * given on the command line there; here they are filled in or, when they differ, refused. The
 * exporter sets maxReqTime to 60 where nobody did, so a forgotten flag is seen.
 */
final class JdkHttpServerFlags {
  private JdkHttpServerFlags() {}

  static void require(Settings settings) throws BadValueException {
    Map<String, String> wanted =
        Map.of(
            "sun.net.httpserver.maxIdleConnections", "1000000",
            "sun.net.httpserver.idleInterval",
                Long.toString(settings.keepAliveTimeout().toSeconds()),
            "sun.net.httpserver.nodelay", "true",
            // Seconds for reading a request. It counts from the first byte, so the wait for a
            // worker is in it: short ones would cut off a saturated pool's queue.
            "sun.net.httpserver.maxReqTime", "600",
            // Off: it would cut off slow routes.
            "sun.net.httpserver.maxRspTime", "-1");
    for (Map.Entry<String, String> flag : wanted.entrySet()) {
      String given = System.getProperty(flag.getKey());
      if (given == null) {
        System.setProperty(flag.getKey(), flag.getValue());
      } else if (!given.equals(flag.getValue())) {
        throw new BadValueException(
            "the JVM runs with -D%s=%s, the settings want %s"
                .formatted(flag.getKey(), given, flag.getValue()));
      }
    }
  }
}
