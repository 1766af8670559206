/** Model {@code thread-per-connection}; see MODEL.md. */
@NullMarked
package lab.perconnection;

import org.jspecify.annotations.NullMarked;
