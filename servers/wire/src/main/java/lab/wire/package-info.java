/**
 * HTTP/1.1 without I/O: bytes in, requests and answers out. Both sides of it: what a server reads
 * and writes, and how a client reads an answer. Knows nothing of routes, threads or sockets.
 */
@NullMarked
package lab.wire;

import org.jspecify.annotations.NullMarked;
