/** The routes' work for models in which a request may block its thread. */
@NullMarked
package lab.contract.blocking;

import org.jspecify.annotations.NullMarked;
