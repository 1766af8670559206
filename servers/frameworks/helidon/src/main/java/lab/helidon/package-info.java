/** Model {@code helidon}; see MODEL.md. */
@NullMarked
package lab.helidon;

import org.jspecify.annotations.NullMarked;
