/** Model {@code vertx}; see MODEL.md. */
@NullMarked
package lab.vertx;

import org.jspecify.annotations.NullMarked;
