"""From a table to validated tensors: `SurvivalData`, readers, data sets, preprocessing, partitions."""
