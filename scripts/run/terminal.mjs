const interactive = process.stdout.isTTY === true;
const coloured = !process.env.NO_COLOR && (interactive || Boolean(process.env.FORCE_COLOR));

const paint = (code) => (text) => (coloured ? `\u001b[${code}m${text}\u001b[0m` : text);

export const success = paint(32);
export const failure = paint(31);
export const faint = paint(2);
export const strong = paint(1);

/** Writes `text` and a line end to standard output. */
export function say(text = '') {
  process.stdout.write(`${text}\n`);
}

/** Milliseconds as a person reads them: `0.4 s`, `12.0 s`, `2 min 5 s`. */
export function duration(milliseconds) {
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** Every line of `text`, moved to the right. */
export function indented(text, by = '    ') {
  return text.trimEnd().replace(/^/gm, by);
}

const HEARTBEAT_MS = 15_000;

/**
 * Numbered progress lines. Each step prints one line with its outcome and its seconds; one that takes long also says that it has
 * begun and that it is still at work.
 *
 * @param {number} [total] how many steps there will be, where that is known
 */
export function progress(total) {
  let number = 0;
  const next = () => faint(`[${++number}${total === undefined ? '' : `/${total}`}]`);
  return {
    /**
     * @template T
     * @param {string} title what is done, as a noun: "dependencies"
     * @param {() => Promise<{ note?: string, value?: T }>} work `note` is printed behind the title
     * @returns {Promise<T | undefined>} the `value` of the work
     */
    async step(title, work) {
      const label = `${next()} ${title}`;
      const started = performance.now();
      if (interactive) process.stdout.write(`${label} …`);
      const heartbeat = setInterval(() => {
        if (!interactive) say(`${label} … ${duration(performance.now() - started)}`);
      }, HEARTBEAT_MS);
      const begin = interactive ? undefined : setTimeout(() => say(`${label} …`), 1000);
      const end = (note) => {
        clearInterval(heartbeat);
        clearTimeout(begin);
        if (interactive) process.stdout.write('\r\u001b[2K');
        say(`${label}: ${note} ${faint(`(${duration(performance.now() - started)})`)}`);
      };
      try {
        const { note = 'done', value } = await work();
        end(note);
        return value;
      } catch (error) {
        end(failure(error.exitCode === 130 ? 'interrupted' : 'failed'));
        throw error;
      }
    },
    /** A numbered line for a step that prints for itself. */
    announce(title) {
      say(`\n${next()} ${strong(title)}`);
    },
  };
}
