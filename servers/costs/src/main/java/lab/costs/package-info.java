/**
 * What the concurrency models are made of, each part by itself: JMH benchmarks, run by {@code make
 * costs}. docs/costs.md has the figures and how to read them.
 */
@NullMarked
package lab.costs;

import org.jspecify.annotations.NullMarked;
