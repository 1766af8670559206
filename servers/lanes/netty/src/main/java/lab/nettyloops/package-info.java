/** Model {@code netty}; see MODEL.md. */
@NullMarked
package lab.nettyloops;

import org.jspecify.annotations.NullMarked;
