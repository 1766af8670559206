/**
 * The contract as tests. A model extends {@link lab.contract.test.ContractTest} and names itself.
 */
@NullMarked
package lab.contract.test;

import org.jspecify.annotations.NullMarked;
