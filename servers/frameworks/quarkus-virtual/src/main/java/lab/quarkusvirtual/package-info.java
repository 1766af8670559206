/** Model {@code quarkus-virtual}; see MODEL.md. */
@NullMarked
package lab.quarkusvirtual;

import org.jspecify.annotations.NullMarked;
