/** What the Quarkus lanes share: its start and stop, what is around the routes, the downstream. */
@NullMarked
package lab.quarkus;

import org.jspecify.annotations.NullMarked;
