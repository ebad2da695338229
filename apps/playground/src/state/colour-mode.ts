/** What colours of the map say. */
export const COLOUR_MODES = ['group', 'policy', 'conversation', 'status'] as const;
export type ColourMode = (typeof COLOUR_MODES)[number];
