/** Passages of Moby-Dick (Herman Melville, 1851, public domain), the book that the demo model was trained on. */

const LOOMINGS = [
  'Call me Ishmael. Some years ago—never mind how long precisely—having little or no money in my purse, and nothing ',
  'particular to interest me on shore, I thought I would sail about a little and see the watery part of the world. ',
  'It is a way I have of driving off the spleen and regulating the circulation. Whenever I find myself growing grim ',
  'about the mouth; whenever it is a damp, drizzly November in my soul; whenever I find myself involuntarily ',
  'pausing before coffin warehouses, and bringing up the rear of every funeral I meet; and especially whenever my ',
  'hypos get such an upper hand of me, that it requires a strong moral principle to prevent me from deliberately ',
  "stepping into the street, and methodically knocking people's hats off—then, I account it high time to get to sea ",
  'as soon as I can.',
].join('');

const NANTUCKET = [
  'Nantucket! Take out your map and look at it. See what a real corner of the world it occupies; how it stands there, ',
  'away off shore, more lonely than the Eddystone lighthouse. Look at it—a mere hillock, and elbow of sand; all beach, ',
  'without a background.',
].join('');

const WHITENESS = [
  'What the white whale was to Ahab, has been hinted; what, at times, he was to me, as yet remains unsaid. Aside from ',
  "those more obvious considerations touching Moby Dick, which could not but occasionally awaken in any man's soul some ",
  'alarm, there was another thought, or rather vague, nameless horror concerning him.',
].join('');

const SYMPHONY = [
  'It was a clear steel-blue day. The firmaments of air and sea were hardly separable in that all-pervading azure; only, ',
  "the pensive air was transparently pure and soft, with a woman's look, and the robust and man-like sea heaved with ",
  "long, strong, lingering swells, as Samson's chest in his sleep.",
].join('');

const LEE_SHORE = [
  'Some chapters back, one Bulkington was spoken of, a tall, newlanded mariner, encountered in New Bedford at the inn. ',
  "When on that shivering winter's night, the Pequod thrust her vindictive bows into the cold malicious waves, who ",
  'should I see standing at her helm but Bulkington!',
].join('');

const QUARTER_DECK = [
  'All visible objects, man, are but as pasteboard masks. But in each event—in the living act, the undoubted deed—there, ',
  'some unknown but still reasoning thing puts forth the mouldings of its features from behind the unreasoning mask. If ',
  'man will strike, strike through the mask!',
].join('');

/** Conversations that are begun together. */
export interface Preset {
  readonly id: string;
  readonly title: string;
  /** What one will see, in one sentence. */
  readonly shows: string;
  /** Each conversation's first message, in pieces; what is common comes first. */
  readonly conversations: readonly (readonly string[])[];
  /** The first one is read before the others begin, so that they find what it left. */
  readonly firstAlone: boolean;
}

export const PRESETS: readonly Preset[] = [
  {
    id: 'shared',
    title: 'One beginning, three endings',
    shows:
      'The first conversation reads a page of text. The other two begin with its memory, buffer by buffer, and read only what is new.',
    conversations: [
      [LOOMINGS, ' And then the captain said,'],
      [LOOMINGS, ' But of the white whale'],
      [LOOMINGS, ' There was an old man who'],
    ],
    firstAlone: true,
  },
  {
    id: 'again',
    title: 'The same words twice',
    shows: 'The second conversation says exactly what the first one said: one token goes through the model, all else is found.',
    conversations: [[WHITENESS], [WHITENESS]],
    firstAlone: true,
  },
  {
    id: 'crowd',
    title: 'Five strangers',
    shows: 'Nobody shares anything: five texts fill the pools side by side. Make the memory smaller and see who has to go.',
    conversations: [
      [[NANTUCKET, LEE_SHORE, SYMPHONY, WHITENESS].join(' ')],
      [[WHITENESS, QUARTER_DECK, NANTUCKET, SYMPHONY].join(' ')],
      [[SYMPHONY, NANTUCKET, QUARTER_DECK, LEE_SHORE].join(' ')],
      [[LEE_SHORE, SYMPHONY, WHITENESS, QUARTER_DECK].join(' ')],
      [[QUARTER_DECK, LEE_SHORE, NANTUCKET, WHITENESS].join(' ')],
    ],
    firstAlone: false,
  },
];

const ENDINGS = [' And the captain', ' But the white whale'] as const;

/** What two requests say under settings that are compared. For scratch it is long, as only long steps leave blocks behind. */
export const COMPARED_TEXTS = {
  policies: { beginning: SYMPHONY + LEE_SHORE, endings: ENDINGS },
  scratch: { beginning: [LOOMINGS, NANTUCKET].join(' '), endings: ENDINGS },
} as const;
