/**
 * What the lab's own HTTP/1.1 servers share: requests' heads taken apart, answers' heads made, and
 * the bound on requests. Knows nothing of threads or sockets.
 */
@NullMarked
package lab.contract.serving;

import org.jspecify.annotations.NullMarked;
