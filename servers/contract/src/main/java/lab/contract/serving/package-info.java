/**
 * What the servers without a library share beside the wire: their answers in bytes, and the bound
 * on requests. Knows nothing of threads or sockets.
 */
@NullMarked
package lab.contract.serving;

import org.jspecify.annotations.NullMarked;
