/** Model {@code event-loop}; see MODEL.md. */
@NullMarked
package lab.eventloop;

import org.jspecify.annotations.NullMarked;
