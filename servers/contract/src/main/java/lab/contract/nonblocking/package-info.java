/** The routes' work for models in which a request must not block its thread. */
@NullMarked
package lab.contract.nonblocking;

import org.jspecify.annotations.NullMarked;
