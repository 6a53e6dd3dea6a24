import { testSamples } from '../support/gallery.ts';

testSamples('C', 'c');
