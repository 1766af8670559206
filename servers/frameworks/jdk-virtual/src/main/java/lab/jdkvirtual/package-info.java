/** Model {@code jdk-virtual}; see MODEL.md. */
@NullMarked
package lab.jdkvirtual;

import org.jspecify.annotations.NullMarked;
