package lab.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import org.junit.jupiter.api.Test;

class BodyBufferTest {
  private static final int MANY = 10_000;

  @Test
  void manySmallPartsAreCopiedAFewTimes() throws Exception {
    BodyBuffer body = new BodyBuffer(MANY);
    byte[] part = {7};
    Set<byte[]> arrays = Collections.newSetFromMap(new IdentityHashMap<>());
    for (int i = 0; i < MANY; i++) {
      body.append(part, 0, 1);
      arrays.add(body.array());
    }
    assertThat(body.bytes()).hasSize(MANY).containsOnly(7);
    assertThat(arrays).hasSizeLessThan(20);
    assertThat(body.array()).hasSize(MANY);
  }

  @Test
  void oneWholePartIsCopiedOnce() throws Exception {
    BodyBuffer body = new BodyBuffer(10);
    body.append(new byte[] {1, 2, 3, 4}, 1, 4);
    assertThat(body.bytes()).containsExactly(2, 3, 4).isSameAs(body.array());
  }

  @Test
  void beyondItsBoundItRefuses() throws Exception {
    BodyBuffer body = new BodyBuffer(3);
    body.append(new byte[2], 0, 2);
    assertThatThrownBy(() -> body.append(new byte[2], 0, 2)).isInstanceOf(MalformedException.class);
    assertThatThrownBy(() -> body.reserve(Long.MAX_VALUE)).isInstanceOf(MalformedException.class);
    assertThat(body.bytes()).hasSize(2);
    body.clear();
    assertThat(body.bytes()).isEmpty();
    body.append(new byte[3], 0, 3);
    assertThat(body.bytes()).hasSize(3);
  }
}
