/** Model {@code spring-webflux}; see MODEL.md. */
@NullMarked
package lab.springwebflux;

import org.jspecify.annotations.NullMarked;
