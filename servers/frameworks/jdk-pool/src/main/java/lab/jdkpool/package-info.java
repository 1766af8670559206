/** Model {@code jdk-pool}; see MODEL.md. */
@NullMarked
package lab.jdkpool;

import org.jspecify.annotations.NullMarked;
