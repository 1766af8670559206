package lab.observe;

/**
 * The one list of histogram buckets of the lab, in seconds: servers and probe use the same.
 *
 * <p>A percentile read from a histogram is interpolated within a bucket, so a bucket's width is the
 * error it may have: 5 % from 0.1 to 1 s, where the models differ first, 20 % outside. (With 0.5
 * and 0.6 as neighbours, a p95 of 507 ms was shown as 595.) Every bound is a series per route and
 * phase that is written and scraped every second beside the load, so there are no more.
 */
final class Buckets {
  private Buckets() {}

  static double[] seconds() {
    return new double[] {
      0.001, 0.00115, 0.00139, 0.00168, 0.00203, 0.00246, 0.00297, 0.00359, 0.00435, 0.00526,
      0.00637, 0.00771, 0.00932, 0.0113, 0.0137, 0.0165, 0.02, 0.0242, 0.0293, 0.0354, 0.0428,
      0.0518, 0.0627, 0.0759, 0.0918, 0.101, 0.106, 0.111, 0.117, 0.123, 0.129, 0.135, 0.142, 0.149,
      0.157, 0.165, 0.173, 0.181, 0.19, 0.2, 0.205, 0.21, 0.221, 0.232, 0.243, 0.255, 0.268, 0.281,
      0.295, 0.31, 0.326, 0.342, 0.359, 0.377, 0.396, 0.416, 0.437, 0.458, 0.481, 0.505, 0.531,
      0.557, 0.585, 0.614, 0.645, 0.677, 0.711, 0.747, 0.784, 0.823, 0.864, 0.908, 0.953, 1.05,
      1.27, 1.53, 1.86, 2.25, 2.72, 3.29, 3.98, 4.82, 5.83, 7.05, 8.53, 10.3, 12.5, 15.1, 18.3,
      22.1, 26.8, 32.4, 39.2, 47.4, 60
    };
  }
}
