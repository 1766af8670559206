/**
 * HTTP/1.1 messages taken apart as bytes: for code that reads sockets itself and wants to make no
 * text of what nobody reads. Knows nothing of routes, threads or sockets.
 */
@NullMarked
package lab.contract.http;

import org.jspecify.annotations.NullMarked;
