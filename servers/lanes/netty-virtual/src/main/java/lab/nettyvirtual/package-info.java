/** Model {@code netty-virtual}; see MODEL.md. */
@NullMarked
package lab.nettyvirtual;

import org.jspecify.annotations.NullMarked;
