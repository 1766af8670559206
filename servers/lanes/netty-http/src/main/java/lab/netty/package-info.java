/**
 * What the models on Netty share: the event loops, HTTP on a connection, limits and metrics. A
 * model adds how a request is worked on.
 */
@NullMarked
package lab.netty;

import org.jspecify.annotations.NullMarked;
