/**
 * Clients' connections on selectors, for every lane without a library that has no thread per
 * connection: a reactor reads and parses whole requests and writes what a socket had no room for. A
 * lane adds what becomes of a request: its own thread's work, or another thread's.
 */
@NullMarked
package lab.reactor;

import org.jspecify.annotations.NullMarked;
