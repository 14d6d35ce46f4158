# Model-based trees of partykit::mob on one fold, for scripts/bench_model_trees.py.
#
#     Rscript scripts/model_tree_peers.R FOLDER LEAVES
#
# FOLDER holds train.csv and test.csv (time, event, encoded features x, the same features in ten quantiles z). Each leaf is
# a Weibull regression (survreg) of its own on all x; z is what may be split. mob decides on the number of leaves by its tests (alpha 0.05), or,
# where LEAVES is above 0, splits without a test to the depth of so many leaves. Written there: mob.csv, the location
# and the scale of log time of each test row, and facts.csv with the number of leaves and the CPU seconds of fitting.

arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
leaves <- as.integer(arguments[2])
suppressPackageStartupMessages(library(survival))
suppressPackageStartupMessages(library(partykit))

weibull <- function(y, x, start = NULL, weights = NULL, offset = NULL, ...) {
  survreg(y ~ 0 + x, weights = weights, dist = "weibull", control = survreg.control(maxiter = 100))
}
logLik.survreg <- function(object, ...) {
  structure(object$loglik[2], df = sum(object$df), class = "logLik")
}

train <- read.csv(file.path(folder, "train.csv"))
test <- read.csv(file.path(folder, "test.csv"))
features <- grep("^x", names(train), value = TRUE)
splits <- grep("^z", names(train), value = TRUE)
sides <- paste(paste(features, collapse = " + "), "|", paste(splits, collapse = " + "))
formula <- as.formula(paste("Surv(time, event) ~", sides))
alpha <- if (leaves > 0) 1.1 else 0.05
depth <- if (leaves > 0) 1 + ceiling(log2(leaves)) else Inf
begin <- proc.time()
least <- 2 * (length(features) + 2)
tree <- suppressWarnings(mob(formula, train, fit = weibull, control = mob_control(alpha = alpha, bonferroni = leaves == 0, maxdepth = depth, minsize = least)))
spent <- proc.time() - begin

nodes <- predict(tree, newdata = test, type = "node")
x <- cbind(1, as.matrix(test[, features]))
location <- rep(NA, nrow(test))
scale <- rep(NA, nrow(test))
for (id in unique(nodes)) {
  model <- info_node(nodeapply(tree, id)[[1]])$object
  beta <- coef(model)
  beta[is.na(beta)] <- 0
  here <- nodes == id
  location[here] <- x[here, , drop = FALSE] %*% beta
  scale[here] <- model$scale
}
write.csv(data.frame(location, scale), file.path(folder, "mob.csv"), row.names = FALSE)
cpu <- spent[["user.self"]] + spent[["sys.self"]]
write.csv(data.frame(leaves = width(tree), cpu), file.path(folder, "facts.csv"), row.names = FALSE)
