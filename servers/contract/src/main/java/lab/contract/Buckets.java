package lab.contract;

/** The one list of histogram buckets of the lab, in seconds: servers and probe use the same. */
final class Buckets {
  private Buckets() {}

  /** Dense around the downstream's 200 ms, where the models differ first. */
  static double[] seconds() {
    return new double[] {
      .001, .0025, .005, .0075, .01, .015, .025, .05, .075, .1, .15, .19, .2, .205, .21, .22, .235,
      .25, .3, .4, .5, .6, .75, 1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10, 15, 30, 60
    };
  }
}
