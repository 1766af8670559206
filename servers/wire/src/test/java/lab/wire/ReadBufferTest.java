package lab.wire;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class ReadBufferTest {
  private final ReadBuffer buffer = new ReadBuffer(512, 8192);

  @Test
  void messagesOfOneSizeAreReadAtOnceFromTheSecondOn() {
    assertThat(reads(100)).containsExactly(512);
    assertThat(reads(512)).containsExactly(512);
    assertThat(reads(600)).containsExactly(512, 2048);
    assertThat(reads(600)).containsExactly(2048);
    assertThat(reads(600)).containsExactly(2048);
  }

  @Test
  void longMessagesAreReadInPiecesOfTheGreatestLength() {
    assertThat(reads(20_000)).containsExactly(512, 2048, 8192, 8192, 8192);
    assertThat(reads(20_000)).containsExactly(8192, 8192, 8192);
  }

  @Test
  void afterAShortMessageItIsShortAgain() {
    assertThat(reads(20_000)).endsWith(8192);
    assertThat(reads(100)).containsExactly(8192);
    assertThat(buffer.bytes()).hasSize(512);
    byte[] same = buffer.next();
    assertThat(reads(100)).containsExactly(512);
    assertThat(buffer.next()).isSameAs(same);
  }

  /** Reads a message of so many bytes, all of which are there; returns how much room each had. */
  private List<Integer> reads(int length) {
    List<Integer> rooms = new ArrayList<>();
    for (int left = length; left > 0; left -= rooms.getLast()) {
      byte[] room = buffer.next();
      buffer.took(Math.min(left, room.length));
      assertThat(buffer.bytes()).isSameAs(room);
      rooms.add(room.length);
    }
    buffer.end();
    return rooms;
  }
}
