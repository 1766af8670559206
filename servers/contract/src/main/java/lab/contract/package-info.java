/**
 * What every server model shares: settings, routes and their bodies, metric names, knobs and the
 * management port. It owns no request thread: each model decides how a request waits.
 */
@NullMarked
package lab.contract;

import org.jspecify.annotations.NullMarked;
