import { useComputed } from '@preact/signals';
import type { JournalEntry, JournalKind } from '../../protocol/journal.ts';
import { groups, journal } from '../../state/store.ts';
import { conversationHue, conversationName, counted, groupHue } from '../../story/names.ts';
import { ScrollRegion } from '../parts/scroll-region.tsx';

const LANES: readonly { readonly name: string; readonly kinds: readonly JournalKind[] }[] = [
  { name: 'Found', kinds: ['began', 'loaded'] },
  { name: 'Published', kinds: ['stored'] },
  { name: 'Left the device', kinds: ['evicted'] },
  { name: 'Came back', kinds: ['onboarded'] },
  { name: 'Forgotten', kinds: ['dropped', 'cleared'] },
];
const LOOK_WIDTH = 12;
const LANE_HEIGHT = 24;
/** Looks that are drawn, and rows of the table. */
const MAX_LOOKS = 90;
const MAX_ROWS = 40;

interface Mark {
  readonly lane: number;
  readonly colour: string;
  /** Pages or tokens. */
  readonly amount: number;
  readonly text: string;
}

/** What happened when: a column for each look at the engine in which something did. */
export function TimelinePanel() {
  const looks = useComputed(() =>
    journal.value
      .map((entries) => entries.flatMap(marksOf))
      .filter((marks) => marks.length > 0)
      .slice(-MAX_LOOKS),
  );
  const { value: shown } = looks;
  const width = Math.max(1, shown.length) * LOOK_WIDTH;
  return (
    <section class="panel timeline" id="timeline" aria-labelledby="timeline-title">
      <div class="panel-head">
        <h2 id="timeline-title">Time line</h2>
        <span class="quiet">{shown.length === 0 ? 'Nothing has happened yet' : 'newest on the right; higher means more'}</span>
      </div>
      <div class="lanes" aria-hidden="true">
        <ul>
          {LANES.map(({ name }) => (
            <li key={name}>{name}</li>
          ))}
        </ul>
        <div class="lanes-scroll">
          <svg width={width} height={LANES.length * LANE_HEIGHT} aria-hidden="true">
            {LANES.map(({ name }, lane) => (
              <line
                key={name}
                x1={0}
                x2="100%"
                y1={(lane + 1) * LANE_HEIGHT - 0.5}
                y2={(lane + 1) * LANE_HEIGHT - 0.5}
                class="lane"
              />
            ))}
            {shown.map((marks, look) =>
              barsOf(marks).map((bar, at) => (
                <rect key={`${look} ${at}`} x={look * LOOK_WIDTH + 2} width={LOOK_WIDTH - 4} rx={2} {...bar} />
              )),
            )}
          </svg>
        </div>
      </div>
      <details>
        <summary>As a table</summary>
        <ScrollRegion kind="table-scroll" label="Time line as a table">
          <table>
            <thead>
              <tr>
                <th scope="col">What</th>
                <th scope="col">How much</th>
              </tr>
            </thead>
            <tbody>
              {shown
                .flat()
                .slice(-MAX_ROWS)
                .reverse()
                .map((mark, index) => (
                  <tr key={index}>
                    <td>{LANES[mark.lane].name}</td>
                    <td>{mark.text}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </ScrollRegion>
      </details>
    </section>
  );
}

function marksOf(entry: JournalEntry): Mark[] {
  const lane = LANES.findIndex(({ kinds }) => kinds.includes(entry.kind));
  if (lane < 0) return [];
  switch (entry.kind) {
    case 'began': {
      const { conversation, reusedTokens, promptTokens } = entry;
      if (reusedTokens === 0) return [];
      const text = `${conversationName(conversation)} found ${reusedTokens} of ${promptTokens} tokens`;
      return [{ lane, colour: conversationHue(conversation), amount: reusedTokens / 16, text }];
    }
    case 'loaded':
      return [
        {
          lane,
          colour: 'var(--accent)',
          amount: entry.numTokens / 16,
          text: `${counted(entry.numTokens, 'token')} from an earlier visit`,
        },
      ];
    case 'cleared':
      return [{ lane, colour: 'var(--ink-quiet)', amount: 40, text: 'Everything that could be shared' }];
    case 'stored':
    case 'evicted':
    case 'onboarded':
    case 'dropped': {
      const { groupId, numPages } = entry;
      const text = `${counted(numPages, 'page')} of ${groups.value[groupId]?.name ?? `group ${groupId}`}`;
      return [{ lane, colour: groupHue(groupId), amount: numPages, text }];
    }
    default:
      return [];
  }
}

/** One bar above the other in each lane: the more, the higher, and never higher than the lane. */
function barsOf(marks: readonly Mark[]): { y: number; height: number; fill: string }[] {
  return LANES.flatMap((_, lane) => {
    const own = marks.filter((mark) => mark.lane === lane);
    const heights = own.map(({ amount }) => 2 + 1.6 * Math.sqrt(amount));
    const scale = Math.min(1, (LANE_HEIGHT - 3) / heights.reduce((sum, height) => sum + height, 0));
    let y = (lane + 1) * LANE_HEIGHT - 1;
    return own.map(({ colour }, i) => {
      const height = scale * heights[i];
      y -= height;
      return { y, height: Math.max(1, height - 0.5), fill: colour };
    });
  });
}
