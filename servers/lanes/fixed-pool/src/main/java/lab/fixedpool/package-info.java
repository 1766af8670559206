/** Model {@code fixed-pool}; see MODEL.md. */
@NullMarked
package lab.fixedpool;

import org.jspecify.annotations.NullMarked;
