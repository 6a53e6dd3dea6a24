import { testSamples } from '../support/gallery.ts';

testSamples('Rust', 'rust');
