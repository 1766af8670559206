/**
 * How the downstream is called, whatever the model: the cap on calls at a time and their deadline,
 * where it is, what it is asked, and how its answer is read. Sockets and threads are the callers'.
 */
@NullMarked
package lab.contract.downstream;

import org.jspecify.annotations.NullMarked;
