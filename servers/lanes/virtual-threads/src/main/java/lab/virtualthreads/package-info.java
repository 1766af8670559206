/** Model {@code virtual-threads}; see MODEL.md. */
@NullMarked
package lab.virtualthreads;

import org.jspecify.annotations.NullMarked;
