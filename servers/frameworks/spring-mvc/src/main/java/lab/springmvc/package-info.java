/** Models {@code spring-mvc} and {@code spring-mvc-virtual}; see MODEL.md. */
@NullMarked
package lab.springmvc;

import org.jspecify.annotations.NullMarked;
