/** The demonstration routes of the lanes with threads. */
@NullMarked
package lab.structured;

import org.jspecify.annotations.NullMarked;
