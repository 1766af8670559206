/** The contract as tests. A model extends {@link lab.conformance.ContractTest} and names itself. */
@NullMarked
package lab.conformance;

import org.jspecify.annotations.NullMarked;
