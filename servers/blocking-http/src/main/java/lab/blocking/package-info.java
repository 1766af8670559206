/**
 * The server that models with a blocking handler share: the JDK's HTTP server, tuned equally. A
 * model adds its executor and nothing else.
 */
@NullMarked
package lab.blocking;

import org.jspecify.annotations.NullMarked;
