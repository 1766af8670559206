/**
 * A server that reads and parses requests on a selector's thread and hands each to a thread that
 * may block. A model adds the expression that makes those threads, and nothing else.
 */
@NullMarked
package lab.front;

import org.jspecify.annotations.NullMarked;
