/**
 * The JDK's HTTP server with a handler that blocks, tuned as the lab's other servers are. A model
 * adds its executor and nothing else.
 */
@NullMarked
package lab.jdkhttp;

import org.jspecify.annotations.NullMarked;
