/**
 * Servers whose reactors, the fronts, hand each request to a thread that may block. A model adds
 * the expression that makes those threads, and nothing else.
 */
@NullMarked
package lab.front;

import org.jspecify.annotations.NullMarked;
