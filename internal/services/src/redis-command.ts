import { createConnection } from 'node:net';

/**
 * One command on a connection of its own, for those who set a server up.
 *
 * @returns the answer as text: of a line what follows its first character, of a string its bytes. Rejects on an error
 */
export function redisCommand(port: number, ...words: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    let received = '';
    const end = (settle: () => void) => {
      socket.destroy();
      settle();
    };
    socket.setTimeout(5_000, () => end(() => reject(new Error(`${words.join(' ')}: no answer of port ${port}`))));
    socket.once('error', (error) => end(() => reject(error)));
    socket.once('close', () => reject(new Error(`${words.join(' ')}: port ${port} hung up`)));
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const answer = answerOf(received);
      if (answer === undefined) return;
      if (answer.failed) end(() => reject(new Error(`${words.join(' ')}: ${answer.text}`)));
      else end(() => resolve(answer.text));
    });
    socket.write(`*${words.length}\r\n${words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`);
  });
}

/** @returns undefined while it is not whole; lists are not read */
function answerOf(received: string): { text: string; failed: boolean } | undefined {
  const lineEnd = received.indexOf('\r\n');
  if (lineEnd < 0) return undefined;
  const line = received.slice(1, lineEnd);
  if (received[0] !== '$' || line === '-1') return { text: line, failed: received[0] === '-' };
  const begin = lineEnd + 2;
  const end = begin + Number(line);
  return received.length < end + 2 ? undefined : { text: received.slice(begin, end), failed: false };
}
