/**
 * What the concurrency models are made of, each part measured alone: JMH benchmarks, run by {@code
 * make jmh}. docs/executors.md has the figures and how to read them.
 */
@NullMarked
package lab.jmh;

import org.jspecify.annotations.NullMarked;
