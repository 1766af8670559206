/** Model {@code quarkus-reactive}; see MODEL.md. */
@NullMarked
package lab.quarkusreactive;

import org.jspecify.annotations.NullMarked;
